// The optimizers and the modes of Muon, with their words.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/enum_words.h"

namespace tpsim {

// Optimizers; core/software/optimizer_kinds.h has the state, ops and limits of each.
enum class OptimizerKind : std::uint8_t {
  kAdamW,
  kMuon,
  kBitsAdamW8,   // bitsandbytes
  kTorchAdamW8,  // torchao
  kTorchAdamW4,
  kAdafactor,
  kLion,
  kLion8,
  kSgd,
  kSgdMomentum,
};
template <>
inline constexpr auto kEnumNames<OptimizerKind> = words<10>(
    "adamw muon adamw_bnb_8bit adamw_torchao_8bit adamw_torchao_4bit adafactor lion lion_8bit sgd "
    "sgd_momentum");

// Muon's iterations for a matrix that tensor-parallel ranks shard, with Megatron-Core's names.
enum class MuonTpMode : std::uint8_t {
  kBlockwise,    // each rank iterates over its own shard: another update than that of one rank
  kDuplicated,   // the matrix is gathered, and each rank iterates over all of it
  kDistributed,  // on shards; the product of the unsharded extent is all-reduced in each iteration
};
template <>
inline constexpr auto kEnumNames<MuonTpMode> = words<3>("blockwise duplicated distributed");

}  // namespace tpsim
