// The smallest extension with a host and a device part, written for CUDA: torch translates it to HIP.
#include <torch/extension.h>

void add_one(float* values, int count);

static int answer() { return 42; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("answer", &answer); }
