"""From a corpus to batches: documents, sentences, tokens on disk, examples, masked batches."""
