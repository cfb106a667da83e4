// Meanings of the keys of all files, for docs/files.md and `tpsim show schema`.
//
// A path is the kind of file and the keys down to the value, without indices of lists:
// "cluster.intra_node.bandwidth". Settings of plans, software parts and assumptions of campaigns
// have their meanings in the tables of core/ and campaigns/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpsim::app {

struct KeyMeaning {
  std::string_view paths;  // separated by spaces
  std::string_view meaning;
};

// One table for each kind of file, each in a source file of its own.
std::span<const KeyMeaning> cluster_key_meanings();
std::span<const KeyMeaning> model_key_meanings();
std::span<const KeyMeaning> stack_key_meanings();
std::span<const KeyMeaning> profile_key_meanings();
std::span<const KeyMeaning> plan_key_meanings();
// These tables, after the keys that several kinds of files have.
std::vector<KeyMeaning> key_meanings();

// Returns the path of the same key in an object that is described elsewhere: "plan.model.layers"
// becomes "model.layers". Empty if there is none.
std::string shared_path(std::string_view path);

// Returns the meaning of a key; empty if there is none.
std::string key_meaning(std::string_view path);

}  // namespace tpsim::app
