"""Frozen types that the stages share. Data only: nothing here reads, starts or prints."""
