"""From files to files: settings, jobs, and the command line.

`settings` says what each verb can be asked for, `jobs/` does it with files, `commands/` is the command line over them;
`demo` and `warm_up` are jobs without a table of the user.
"""
