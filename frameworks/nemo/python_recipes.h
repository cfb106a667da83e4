// Recipes of NeMo 2 and Megatron-Bridge, in Python.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

struct PythonRecipe {
  std::vector<FlatSetting> settings;          // by the names of Megatron-Bridge's YAML
  std::vector<std::string> models;            // what its model may go by, the likeliest first
  std::int64_t gpus = 0;                      // 0: it does not say
  std::vector<std::string> passed_elsewhere;  // functions of other files that may have changed it
  std::string builds_on;  // what of another file knows the rest; empty: nothing does
};

Result<PythonRecipe> read_recipe(const LaunchFile& file,
                                 const std::map<std::string, std::string>& given);

}  // namespace tpsim
