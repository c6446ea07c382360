# The commands of every day.  Each can be run again at any time: it downloads and builds only what
# is missing.  All of it is plain cmake and ctest with the presets of CMakePresets.json.

EPOCHS ?= 3

.PHONY: run test build setup test-setup asan tsan fuzz check format bench install dist clean distclean help
.NOTPARALLEL:

help:
	@echo "make run [EPOCHS=3]  build, then train a small CNN on Fashion-MNIST"
	@echo "make test            build, then every test"
	@echo "make asan, tsan      the fast tests under AddressSanitizer and UBSan, ThreadSanitizer"
	@echo "make fuzz [SECONDS=60]  hostile files, so many seconds for each format"
	@echo "make check           layers, types, sizes, format, tables;  make format formats the sources"
	@echo "make bench           timings of bench/ and ridge/**/*_bench.cc"
	@echo "make install         into build/install, or PREFIX=..."
	@echo "make dist            a tarball and a wheel for other machines, in build/dist/out"
	@echo "make clean           removes what was built; distclean also what was downloaded"

setup:
	@scripts/setup.sh

test-setup:
	@scripts/setup.sh --test-tools

build: setup
	cmake --preset release
	cmake --build --preset release --target ridge

run: build
	build/release/bin/ridge train cnn --data fashion-mnist --epochs $(EPOCHS) --batch 128

test: test-setup
	cmake --preset release
	cmake --build --preset release
	ctest --preset release

# POINTERS=ON: UBSan looks at each pointer, too; files take two thirds longer to compile.
POINTERS = OFF
asan tsan: test-setup
	cmake --preset $@ -DRIDGE_SANITIZE_POINTERS=$(POINTERS)
	cmake --build --preset $@
	ctest --preset $@

# What is found grows build/fuzz/corpus; an input that breaks something is left in build/fuzz.
SECONDS = 60
fuzz: test-setup
	cmake --preset fuzz
	cmake --build --preset fuzz
	scripts/fuzz.sh $(SECONDS)

check: test-setup
	tools/check_layers.py
	tools/check_types.py
	tools/size_report.py --skip-tests
	bench/results_table.py --check
	tools/check_format.sh
	tools/options_table.py --check

format:
	tools/check_format.sh --fix

bench: test-setup
	cmake --preset release
	cmake --build --preset release --target ridge_benches
	@for program in build/release/bench/*_bench; do \
	  if [ -x "$$program" ]; then echo "$$program"; "$$program" || exit 1; fi; done

PREFIX ?= build/install
install: build
	cmake --install build/release --prefix $(PREFIX) --strip

# The version is that of CMakeLists.txt.
VERSION = $(shell sed -n 's/^project.ridge VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
dist: setup
	scripts/build_cudnn_plugin.sh --headers
	cmake --preset dist
	cmake --build --preset dist --target ridge
	rm -rf build/dist/root build/dist/out
	cmake --install build/dist --prefix build/dist/root --strip
	tools/make_dist.py build/dist/root $(VERSION) build/dist/out

clean:
	rm -rf build/dev build/release build/dist build/asan build/tsan build/fuzz build/install

distclean:
	rm -rf build
