"""What a model is asked to predict: masked tokens, the next sentence, the next token."""
