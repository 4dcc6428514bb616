"""Every command that writes, with every change that it makes to files failing in every way: make faults."""
