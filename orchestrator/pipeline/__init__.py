"""Puts the stages in order; they meet nowhere else."""
