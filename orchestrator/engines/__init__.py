"""Where blocks are started: on this machine, for now on no other."""
