"""Released checkpoints in, our own folders out, and back again."""
