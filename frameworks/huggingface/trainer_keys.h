// Reads settings that have different keys in the Trainer, accelerate and axolotl.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// Keys of the longest sequence, and of the longest answer, in the order in which they count.
inline constexpr const char* kLengthKeys[] = {
    "sequence_len", "max_seq_length", "max_length",  "model_max_length",
    "cutoff_len",   "block_size",     "max_seq_len", "per_device_max_tokens"};
inline constexpr const char* kAnswerKeys[] = {"max_completion_length", "target_max_len",
                                              "max_target_length"};

// Returns the value of the first of these keys that the file has, and marks all of them as read.
std::optional<std::string> any_text(FlatReader& in, std::initializer_list<const char*> keys);
// Likewise for switches: whether any of the keys is on.
bool any_flag(FlatReader& in, std::initializer_list<const char*> keys);
// Likewise for an integer; -1 if the file has none of the keys.
std::int64_t any_integer(FlatReader& in, std::initializer_list<const char*> keys);

// Returns the settings with dictionaries in JSON, as command lines state them, replaced by a
// setting per key: "accelerator_config.split_batches".
std::vector<FlatSetting> with_flat_values(std::vector<FlatSetting> settings);

// Reads the optimizer (transformers/training_args.py, OptimizerNames; trainer.py:1440). Call after
// the dtype of moments is read: some optimizers have their own format.
void read_trainer_optimizer(FlatReader& in, ImportedPlan& result);
// Removes overrides of the model's configuration that do not change its cost: "rope_theta=1e6".
void leave_out_overrides(FlatReader& in, std::vector<std::string>& outside);
// Adds a note if the allocator's cache is emptied between steps.
void note_empty_cache(FlatReader& in, ImportedPlan& result);

}  // namespace tpsim
