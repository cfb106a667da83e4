# cmake -Dinput=FILE -Doutput=FILE.cc -Dname=kName -P embed_file.cmake: a file as an array in C++.
file(READ "${input}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "([^\n]?0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
       bytes "${bytes}")
file(WRITE "${output}" "// Made from ${input} by gui/embed_file.cmake.
#include <span>
namespace tpsim::gui {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace
extern const std::span<const unsigned char> ${name};
const std::span<const unsigned char> ${name}(kBytes);
}  // namespace tpsim::gui
")
