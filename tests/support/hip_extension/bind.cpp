// The host part of the smallest extension with device code. pybind11 is the one inside torch; torch/extension.h, which takes
// most of a minute to compile, is left to the one test that is about it.
#include <pybind11/pybind11.h>

void add_one(float* values, int count);

static int answer() { return 42; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("answer", &answer); }
