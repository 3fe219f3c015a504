"""Models ready for `fit`: a backbone, a head, and the text preparation both need."""
