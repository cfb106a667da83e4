# Translates a source of kernels/cuda for a host compiler:
#   cmake -DFROM=<file> -DTO=<file> -P translate.cmake
# Launches become calls, shared memory becomes the block's own, and launch bounds become a check.
# All other keywords are macros and functions of device_words.h. Line numbers are kept.
file(READ "${FROM}" text)
string(REGEX REPLACE "([A-Za-z_][A-Za-z0-9_]*(<[^;(){}]*>)?)([ \n]*)<<<"
  "::tpsim::emulated::on_gpu([=](auto... given) { \\1(given...); },\\3::tpsim::emulated::Launch(" text "${text}")
string(REPLACE ">>>(" "))(" text "${text}")
string(REGEX REPLACE "extern __shared__ (__align__\\([0-9]+\\) )?([A-Za-z0-9_]+) ([A-Za-z0-9_]+)\\[\\]"
  "\\2* const \\3 = reinterpret_cast<\\2*>(::tpsim::emulated::shared_memory())" text "${text}")
string(REGEX REPLACE "__shared__ ([A-Za-z0-9_:]+) ([a-z_]+)([^;\n]*);"
  "auto& \\2 = ::tpsim::emulated::block_variable<\\1\\3>([] {});" text "${text}")
string(REGEX REPLACE "__launch_bounds__\\(([^)]*)\\)([^{]*{)"
  "\\2 ::tpsim::emulated::demand_threads(\\1);" text "${text}")
string(PREPEND text "#include \"tests/emulated_gpu/device_words.h\"\n#line 1 \"${FROM}\"\n")
file(WRITE "${TO}" "${text}")
