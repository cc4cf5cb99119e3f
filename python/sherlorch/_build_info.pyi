# _build_info.py is written by the build, from cmake/_build_info.py.in.
version: str
torch_version: str
python_version: str
compiler: str
build_type: str
