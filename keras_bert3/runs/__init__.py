"""What the recipes share: the folder of a run, its log, the course of pretraining, its report."""
