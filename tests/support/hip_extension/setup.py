from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="hip-extension",
    version="1.0",
    ext_modules=[CUDAExtension("hip_extension", ["bind.cpp", "add.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
