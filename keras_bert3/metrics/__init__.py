"""What a trained model is worth."""
