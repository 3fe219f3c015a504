"""The three papers' networks: from token ids to contextual vectors."""
