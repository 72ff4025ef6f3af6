import sys

import torch
from setuptools import setup

if "bdist_wheel" in sys.argv:
    print("ext.cpp:3:10: fatal error: rocm_thing/missing.h: No such file or directory", file=sys.stderr)
    print("error: command '/usr/bin/g++' failed with exit code 1", file=sys.stderr)
    sys.exit(1)

setup(name="broken-torch-ext", version="@VERSION@", install_requires=["torch"])
