// Finds the training command in YAML of schedulers: manifests of Kubernetes (Job, JobSet,
// PyTorchJob, TrainJob and others), and files in which a text or a list of words is a command.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/jobs/job_files.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

using Settings = std::vector<FlatSetting>;

// Replaces "$(NAME)", which Kubernetes expands, by "${NAME}".
std::string with_shell_names(std::string text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  for (std::size_t at = 0; (at = text.find("$(", at)) != std::string::npos; ++at) {
    const std::size_t end = text.find_first_not_of(kPlain, at + 2);
    if (end == std::string::npos || text[end] != ')' || end == at + 2) continue;
    text[at + 1] = '{';
    text[end] = '}';
  }
  return text;
}

// Returns the word for bash. Only variables of Kubernetes are expanded.
std::string quoted_word(const std::string& word) {
  const std::string named = with_shell_names(word);
  std::string out = "\"";
  for (const char c : named) {
    if (c == '"' || c == '\\' || c == '`' || (c == '$' && named == word)) out += '\\';
    out += c;
  }
  return out + "\"";
}

// Returns the script that a container runs with these words of command and args.
std::string script_of_words(const std::vector<std::string>& words) {
  if (words.size() == 1) return with_shell_names(words.front());
  const std::string shell = words.front().substr(words.front().find_last_of('/') + 1);
  const bool is_shell = shell == "bash" || shell == "sh";
  for (std::size_t i = 1; is_shell && i + 1 < words.size(); ++i) {
    if (words[i].starts_with('-') && words[i].ends_with('c')) {
      return with_shell_names(words[i + 1]);
    }
  }
  std::string line;
  for (const std::string& word : words) line += quoted_word(word) + " ";
  return line;
}

// A command, and the key of its container.
struct Container {
  std::string key;
  std::vector<std::string> words;
};

// Returns the texts and lists of words that start a training, in the order of the file.
std::vector<Container> containers_in(const Settings& settings) {
  std::vector<Container> found;
  for (const FlatSetting& one : settings) {
    std::string key = one.key.substr(0, one.key.find_last_of('.'));
    const std::string last = one.key.substr(one.key.find_last_of('.') + 1);
    if (parse_number<std::int64_t>(last)) {  // an element of a list
      const std::string list = key.substr(key.find_last_of('.') + 1);
      if (list == "command" || list == "args") key.resize(key.find_last_of('.'));
    } else if (last != "command" && last != "args") {
      key = one.key;
    }
    auto own = std::find_if(found.begin(), found.end(),
                            [&](const Container& other) { return other.key == key; });
    if (own == found.end()) own = found.insert(own, {key, {}});
    own->words.push_back(one.value);
  }
  std::erase_if(found, [](const Container& one) {
    return !may_start_training(fmt::format("{}", fmt::join(one.words, " ")));
  });
  return found;
}

// Returns "export NAME=VALUE" for the variables of a container.
std::string environment_of(const std::string& container, const Settings& settings) {
  std::string lines, name;
  const std::string prefix = container + ".env.";
  for (const FlatSetting& one : settings) {
    if (!one.key.starts_with(prefix)) continue;
    if (one.key.ends_with(".name")) name = one.value;
    if (!one.key.ends_with(".value") || name.empty()) continue;
    lines += fmt::format("export {}={}\n", name, quoted_word(one.value));
  }
  return lines;
}

// Returns the pods of a container: the product of the numbers that the sections around it state.
std::int64_t pods_of(const std::string& container, const Settings& settings) {
  std::int64_t pods = 1;
  for (std::size_t dot = container.find('.'); dot != std::string::npos;
       dot = container.find('.', dot + 1)) {
    const std::string section = container.substr(0, dot + 1);
    for (const char* key : {"replicas", "parallelism", "numNodes", "size"}) {
      const std::int64_t number = setting_number(settings, section + key, 1);
      if (number >= 1 && number <= 1 << 20) pods *= number;
    }
  }
  return std::min<std::int64_t>(pods * setting_number(settings, container + ".numNodes", 1),
                                1 << 20);
}

// Returns the GPUs that a pod of the container requests; 0 if unknown.
std::int64_t gpus_of(const std::string& container, const Settings& settings) {
  std::int64_t gpus = 0;
  for (const FlatSetting& one : settings) {
    if (!one.key.starts_with(container + ".resources") || !one.key.ends_with(".com/gpu")) continue;
    gpus = std::max(gpus, parse_number<std::int64_t>(one.value).value_or(0));
  }
  return gpus;
}

// Returns the documents of the YAML file, each at its lines of the file.
std::vector<std::string> documents_of(std::string_view text) {
  std::vector<std::string> documents(1);
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = cut_off(text, "\n");
    lines += '\n';
    if (line == "---") {
      documents.push_back(lines);
    } else {
      documents.back() += std::string(line) + "\n";
    }
  }
  return documents;
}

// The script that a container runs, and the GPUs of all its pods; 0 if unknown.
struct Manifest {
  std::string script;
  std::int64_t gpus = 0;
};

// Returns the training that the settings start.
Result<Manifest> manifest_of(const Settings& settings, const LaunchFile& file) {
  Manifest manifest;
  for (const Container& one : containers_in(settings)) {
    const std::string script =
        environment_of(one.key, settings) + script_of_words(one.words) + "\n";
    if (!manifest.script.empty() && script != manifest.script) {
      return bad_input(fmt::format("holds several training commands, one of them in {}", one.key),
                       path_of(file), "import a file with one of them");
    }
    manifest.script = script;
    manifest.gpus += pods_of(one.key, settings) * gpus_of(one.key, settings);
  }
  return manifest;
}

}  // namespace

Result<KubernetesFiles> files_of_kubernetes(const std::vector<LaunchFile>& files) {
  TPSIM_TRY(const LaunchFile jobset, file_named(files, kJobSetFile));
  std::string text = jobset.text;
  if (const auto map = file_named(files, kConfigMapFile); map.ok()) text += "---\n" + map->text;
  KubernetesFiles out;
  std::vector<LaunchFile> maps;
  std::optional<Manifest> job;
  for (const std::string& document : documents_of(text)) {
    TPSIM_TRY(const Settings settings, flat_yaml(document, path_of(jobset), true));
    const bool is_map = setting_value(settings, "kind") == "ConfigMap";
    for (const FlatSetting& one : settings) {
      if (is_map && one.key.starts_with("data.")) maps.push_back({one.key.substr(5), one.value});
    }
    if (is_map || containers_in(settings).empty()) continue;
    if (job) {
      return bad_input("holds several jobs that start a training", path_of(jobset),
                       "import a file with one of them");
    }
    TPSIM_TRY(job, manifest_of(settings, jobset));
  }
  if (!job) {
    return bad_input("has no container that starts a training", path_of(jobset),
                     "import the script that the container starts");
  }
  out.files = std::move(maps);
  out.files.insert(out.files.begin(), {kSlurmFile, job->script, path_of(jobset)});
  out.gpus = job->gpus;
  return out;
}

}  // namespace tpsim
