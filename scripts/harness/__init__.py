"""What the demo, the whole-system tests and the benchmark share: where the MPIs are, and how a job is run and cleaned
up after."""
