"""pip's command line and files, read as pip reads them. Nothing is imported here: the fast path passes through."""
