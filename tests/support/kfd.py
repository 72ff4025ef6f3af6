"""KFD properties of known GPUs, from captures (tinygrad's mock GPU, rocm_bootstrap's fixtures, ROCm issue reports)."""

from __future__ import annotations

from collections.abc import Mapping

_AMD = {"cpu_cores_count": 0, "vendor_id": 4098, "domain": 0}

GPUS: dict[str, Mapping[str, object]] = {
    "mi300x": {
        **_AMD, "gpu_id": 51110, "simd_count": 1216, "mem_banks_count": 1, "io_links_count": 8, "max_waves_per_simd": 8,
        "lds_size_in_kb": 64, "wave_front_size": 64, "array_count": 32, "simd_arrays_per_engine": 1, "cu_per_simd_array": 10,
        "simd_per_cu": 4, "gfx_target_version": 90402, "device_id": 29857, "location_id": 4096,
        "hive_id": 11638818706288400384, "unique_id": 9895604649984, "num_xcc": 8, "max_engine_clk_fcompute": 2100,
    },
    "mi250x": {
        **_AMD, "gpu_id": 5011, "simd_count": 440, "simd_per_cu": 4, "wave_front_size": 64, "gfx_target_version": 90010,
        "device_id": 29704, "location_id": 37632, "hive_id": 1, "num_xcc": 1, "max_engine_clk_fcompute": 1700,
    },
    "mi250x_second_die": {
        **_AMD, "gpu_id": 5012, "simd_count": 440, "simd_per_cu": 4, "wave_front_size": 64, "gfx_target_version": 90010,
        "device_id": 29704, "location_id": 38400, "hive_id": 1, "num_xcc": 1, "max_engine_clk_fcompute": 1700,
    },
    "mi350x": {
        **_AMD, "gpu_id": 7001, "simd_count": 1024, "array_count": 32, "cu_per_simd_array": 9, "simd_per_cu": 4,
        "gfx_target_version": 90500, "device_id": 30112, "location_id": 8192, "num_xcc": 8, "capability2": 1,
    },
    "rx7900xtx": {
        **_AMD, "gpu_id": 4672, "simd_count": 192, "mem_banks_count": 1, "caches_count": 206, "io_links_count": 1,
        "max_waves_per_simd": 16, "wave_front_size": 32, "array_count": 12, "simd_arrays_per_engine": 2,
        "cu_per_simd_array": 8, "simd_per_cu": 2, "gfx_target_version": 110000, "device_id": 29772, "location_id": 34304,
        "unique_id": 11673270660693242239, "num_xcc": 1, "max_engine_clk_fcompute": 2482,
    },
    "strix_halo": {
        **_AMD, "gpu_id": 30720, "simd_count": 80, "mem_banks_count": 1, "io_links_count": 1, "wave_front_size": 32,
        "array_count": 4, "simd_arrays_per_engine": 2, "cu_per_simd_array": 10, "simd_per_cu": 2,
        "gfx_target_version": 110501, "device_id": 5510, "location_id": 50688, "num_xcc": 1,
    },
    "rx9070xt": {
        **_AMD, "gpu_id": 9070, "simd_count": 128, "mem_banks_count": 1, "io_links_count": 1, "wave_front_size": 32,
        "array_count": 8, "simd_per_cu": 2, "gfx_target_version": 120001, "device_id": 30032, "location_id": 33792,
    },
    "raphael_igpu": {
        **_AMD, "gpu_id": 1036, "simd_count": 4, "mem_banks_count": 1, "wave_front_size": 32, "simd_per_cu": 2,
        "gfx_target_version": 100306, "device_id": 5710, "location_id": 4608,
    },
    "rx6700xt": {
        **_AMD, "gpu_id": 6700, "simd_count": 80, "wave_front_size": 32, "simd_per_cu": 2, "gfx_target_version": 100301,
        "device_id": 29663, "location_id": 768,
    },
    "mi50": {
        **_AMD, "gpu_id": 906, "simd_count": 240, "wave_front_size": 64, "simd_per_cu": 4, "gfx_target_version": 90006,
        "device_id": 26273, "location_id": 1280,
    },
    "phoenix": {
        **_AMD, "gpu_id": 1103, "simd_count": 24, "wave_front_size": 32, "simd_per_cu": 2, "gfx_target_version": 110003,
        "device_id": 5567, "location_id": 51200,
    },
}  # fmt: skip
