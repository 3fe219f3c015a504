"""Text to token ids and back: vocabularies, their training, and packing into model inputs."""
