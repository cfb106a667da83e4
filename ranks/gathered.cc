#include "ranks/gathered.h"

#include <algorithm>
#include <span>

#include "kernels/device.h"

namespace tpsim {
namespace {

constexpr Label kLabel{ModelPart::kCoordination, "gathered"};

// All-gathers an equal number of elements per rank.
template <class T>
std::vector<T> all_of(Device& device, Communicator& everyone, const std::vector<T>& mine,
                      DType dtype) {
  const std::int64_t count = std::ssize(mine);
  const Tensor all = device.allocate({count * everyone.size()}, dtype,
                                     MemoryCategory::kCommunication, kLabel.text);
  const Tensor part = all.slice(everyone.rank() * count, count);
  device.upload(std::as_bytes(std::span(mine)), part);
  everyone.all_gather(part, all, kLabel);
  device.synchronize();
  std::vector<T> values(static_cast<std::size_t>(all.elements()));
  device.download(all, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

std::vector<std::string> gathered(World& world, Device& device, const std::string& mine) {
  if (world.size() == 1) return {mine};
  const auto everyone = world.communicator(device, GroupKind::kWorld, all_ranks(world));
  TPSIM_CHECK(mine.size() < (1U << 30), "the string must be shorter than 1 GiB");
  const std::vector<std::int32_t> sizes = all_of<std::int32_t>(
      device, *everyone, {static_cast<std::int32_t>(mine.size())}, DType::kInt32);

  // An all-gather needs parts of equal size with at least one element, so the strings are padded.
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::vector<char> padded(std::max<std::size_t>(1, longest));
  std::copy(mine.begin(), mine.end(), padded.begin());
  const std::vector<char> all = all_of<char>(device, *everyone, padded, DType::kUInt8);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    texts.emplace_back(all.data() + rank * padded.size(), static_cast<std::size_t>(sizes[rank]));
  }
  return texts;
}

}  // namespace tpsim
