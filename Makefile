# Verbs for people who type make. CMake does the work; the presets are in CMakePresets.json.
.PHONY: build test asan tsan emulated format tidy bench validate clean

build:      ## build/release/tpsim
	cmake --preset release
	cmake --build --preset release

test:       ## all tests, installing what is missing
	tools/test.sh

asan tsan:  ## unit tests under AddressSanitizer + UBSan, or ThreadSanitizer
	cmake --preset $@
	cmake --build --preset $@
	ctest --preset $@ -L 'unit|laws|gpu'

emulated:   ## the CUDA device on a GPU emulated by the CPU
	cmake --preset emulated
	cmake --build --preset emulated
	ctest --preset emulated -L gpu

format:     ## clang-format in place
	tools/format.sh

tidy:       ## clang-tidy, errors only
	tools/tidy.sh

bench:      ## speed of the CPU's ops against this machine's own limits
	cmake --preset release
	cmake --build --preset release --target tpsim_bench_kernels
	build/release/tpsim_bench_kernels

validate: build  ## predictions against published runs
	ctest --preset release -L validation

clean:
	rm -rf build
