"""The playground: what a mistake looks like, on trainings that are made on request.

- `options`: what may be chosen, and what a query chose.
- `networks`, `rates`: trainings and range tests, recorded and checked like any other. They import
  torch and run in a process of their own (`worker`), which `simulator` starts and asks.
- `schedules`: learning-rate schedules. `tree`: the diagnosis tree. `gallery`: recorded curves.
"""
