"""`python -s workloads.pyz REQUEST.json RESULT.json`."""

from workloads.worker import main

main()
