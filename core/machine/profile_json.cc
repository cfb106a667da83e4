#include "core/machine/profile_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "core/json/key_meanings.h"
#include "core/machine/device_fields.h"

namespace tpsim {
namespace {

// The samples with the same kind, variant and dtype. Files state these once per group, so that a
// row holds only numbers.
struct OpGroup {
  OpKey key;  // without dims
  std::int64_t dims = 1;
  TableRows rows;
};

struct CollectiveGroup {
  CollectiveKind kind{};
  std::int64_t ranks = 2;
  TableRows rows;
};

// Returns a profile with the values of fields that a file omits.
Profile unread_profile() {
  Profile profile;
  profile.model = usual_model();
  return profile;
}

// A profile in the structure of its file.
struct ProfileDocument {
  Profile profile = unread_profile();  // without samples
  std::vector<OpGroup> ops, sustained;
  std::vector<CollectiveGroup> collectives;
};

constexpr NumberRange kExactCount{1, 1e15};   // dims and bytes: exact in a double
constexpr NumberRange kDuration{1e-12, 1e6};  // seconds

std::vector<TableColumn> op_columns(std::int64_t dims) {
  std::vector<TableColumn> columns(static_cast<std::size_t>(dims), {"a dim", true, kExactCount});
  columns.push_back({"seconds", false, kDuration});
  columns.push_back({"spread", false, {0, 1e3}});
  columns.push_back({"count", true, {1, 1e9}});
  return columns;
}

constexpr auto kOpGroupFields = [](auto& io, auto& group) {
  constexpr auto kWithKernels = all_up_to<OpKind::kInitNormal>();
  io.choice(key_at("profile/op"), group.key.kind, {kWithKernels.begin(), kWithKernels.end()});
  io.integer(key_at("profile/variant"), group.key.variant, {0, 255});
  io.choice(key_at("profile/dtype"), group.key.dtype,
            {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt32, DType::kFloat8,
             DType::kFloat8Block, DType::kMxFloat8, DType::kNvFloat4});
  io.integer(key_at("profile/dims"), group.dims,
             {1, static_cast<std::int64_t>(group.key.dims.size())});
  io.table(key_at("profile/samples"), group.rows, op_columns(group.dims),
           static_cast<std::size_t>(group.dims) + 1);
};

// Returns a GEMM dtype that has samples although its peak is zero; fp32 if there is none.
DType type_without_peak(const Profile& profile, const std::vector<OpGroup>& groups) {
  for (const OpGroup& group : groups) {
    const bool is_taken = matrix_peak(profile.device, group.key.dtype).value() > 0;
    if (is_narrow(group.key.dtype) && !is_taken) return group.key.dtype;
  }
  return DType::kFloat32;
}

constexpr auto kCollectiveGroupFields = [](auto& io, auto& group) {
  io.choice(key_at("profile/collective"), group.kind, every<CollectiveKind>());
  io.integer(key_at("profile/ranks"), group.ranks, {1, 1024});
  io.table(key_at("profile/collectivegroup.samples"), group.rows,
           {{"bytes", true, kExactCount}, {"seconds", false, kDuration}}, 2);
};

constexpr auto kAlgorithmFields = [](auto& io, auto& choice) {
  io.text(key_at("profile/choice"), choice);
};

constexpr auto kDocumentFields = [](auto& io, auto& document) {
  auto& profile = document.profile;
  io.format("tpsim-profile/1");
  io.text(key_at("profile/name"), profile.name);
  io.text(key_at("profile/source"), profile.source);
  io.text(key_at("profile/date"), profile.date);
  io.choice(key_at("profile/provenance"), profile.provenance,
            {Provenance::kMeasuredHere, Provenance::kPublished, Provenance::kDatasheet});
  io.object(
      key_at("profile/machine"), [&](auto& inner) { kMachineFields(inner, profile.machine); },
      kOptional);
  io.object(key_at("profile/device"), [&](auto& inner) { kDeviceFields(inner, profile.device); });
  io.object(key_at("profile/model"), [&](auto& inner) { kModelFields(inner, profile.model); });
  io.flag(key_at("profile/burst_clocks"), profile.burst_clocks);
  io.object(
      key_at("profile/runtime"), [&](auto& inner) { kRuntimeFields(inner, profile.runtime); },
      kOptional);
  io.text(key_at("profile/algorithms_chosen_by"), profile.algorithms.chosen_by, kOptional);
  io.objects(key_at("profile/algorithms"), profile.algorithms.choices, kAlgorithmFields, kOptional);
  io.objects(key_at("profile/ops"), document.ops, kOpGroupFields, kOptional);
  io.objects(key_at("profile/sustained"), document.sustained, kOpGroupFields, kOptional);
  for (const auto* groups : {&document.ops, &document.sustained}) {
    const DType type = type_without_peak(profile, *groups);
    io.require(type == DType::kFloat32, "device",
               fmt::format("the file has samples of {}, which need {}_peak", name_of(type),
                           type == DType::kFloat8Block ? "fp8" : name_of(type)));
  }
  io.object_if(profile.link.bandwidth > BytesPerSecond(), key_at("profile/link"),
               [&](auto& inner) { kLinkFields(inner, profile.link); });
  io.objects(key_at("profile/collectives"), document.collectives, kCollectiveGroupFields,
             kOptional);
};

OpSample sample_of(const OpGroup& group, const std::vector<double>& row) {
  const auto dims = static_cast<std::size_t>(group.dims);
  OpSample sample{group.key, Seconds(row[dims])};
  for (std::size_t i = 0; i < dims; ++i) sample.key.dims[i] = static_cast<std::int64_t>(row[i]);
  if (row.size() > dims + 1) {
    sample.spread = row[dims + 1];
    sample.count = static_cast<int>(row[dims + 2]);
  }
  return sample;
}

std::vector<double> row_of(const OpSample& sample, std::int64_t dims) {
  std::vector<double> row(sample.key.dims.begin(), sample.key.dims.begin() + dims);
  row.push_back(sample.median.value());
  if (sample.spread > 0 || sample.count > 1) {
    row.push_back(sample.spread);
    row.push_back(sample.count);
  }
  return row;
}

std::int64_t used_dims(const OpKey& key) {
  return std::find(key.dims.begin(), key.dims.end(), 0) - key.dims.begin();
}

OpGroup group_for(const OpSample& sample) {
  return {{sample.key.kind, sample.key.dtype, sample.key.variant, {}}, used_dims(sample.key), {}};
}

std::vector<OpGroup> groups_of(const std::vector<OpSample>& samples) {
  std::vector<OpGroup> groups;
  for (const OpSample& sample : samples) {
    const OpGroup wanted = group_for(sample);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const OpGroup& g) {
      return g.key == wanted.key && g.dims == wanted.dims;
    });
    if (group == groups.end()) group = groups.insert(group, wanted);
    group->rows.push_back(row_of(sample, group->dims));
  }
  return groups;
}

std::vector<OpSample> samples_of(const std::vector<OpGroup>& groups) {
  std::vector<OpSample> samples;
  for (const OpGroup& group : groups) {
    for (const auto& row : group.rows) samples.push_back(sample_of(group, row));
  }
  return samples;
}

ProfileDocument document_of(const Profile& profile) {
  ProfileDocument document{profile, groups_of(profile.ops), groups_of(profile.sustained), {}};
  for (const CollectiveSample& sample : profile.collectives) {
    auto group = std::find_if(
        document.collectives.begin(), document.collectives.end(),
        [&](const CollectiveGroup& g) { return g.kind == sample.kind && g.ranks == sample.ranks; });
    if (group == document.collectives.end()) {
      group = document.collectives.insert(group, {sample.kind, sample.ranks, {}});
    }
    group->rows.push_back({sample.bytes.value(), sample.median.value()});
  }
  return document;
}

Profile profile_of(ProfileDocument document) {
  Profile profile = std::move(document.profile);
  profile.ops = samples_of(document.ops);
  profile.sustained = samples_of(document.sustained);
  for (const CollectiveGroup& group : document.collectives) {
    for (const auto& row : group.rows) {
      profile.collectives.push_back({group.kind, group.ranks, Bytes(row[0]), Seconds(row[1])});
    }
  }
  return profile;
}

// Rejects GEMM samples above the stated peak, as in a profile that was copied for a slower GPU with
// new peaks but old samples.
Status check_samples(const Profile& profile, const std::string& file) {
  if (profile.provenance == Provenance::kMeasuredHere)
    return Ok{};  // measurements may exceed a fitted peak
  for (const OpSample& sample : profile.ops) {
    if (sample.key.kind != OpKind::kMatmul) continue;
    const FlopsPerSecond peak = matrix_peak(profile.device, sample.key.dtype);
    const auto& d = sample.key.dims;
    const Flops work(2.0 * static_cast<double>(d[0] * d[1] * d[2]) * static_cast<double>(d[3]));
    if (peak <= FlopsPerSecond() || work / sample.median <= peak) continue;
    return bad_input(
        fmt::format("the sample {} reached {}, above the stated peak of {}", to_string(sample.key),
                    to_string(work / sample.median), to_string(peak)),
        file, "correct the peak, or remove samples of another GPU");
  }
  return Ok{};
}

}  // namespace

Result<Profile> read_profile(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostJsonBytes));
  return parse_profile(text, path.string());
}

Result<Profile> parse_profile(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  TPSIM_TRY(ProfileDocument document, spec_from_json<ProfileDocument>(root, file, kDocumentFields));
  Profile profile = profile_of(std::move(document));
  DeviceFacts& device = profile.device;
  if (device.measured_bandwidth <= BytesPerSecond()) {
    device.measured_bandwidth = device.memory_bandwidth;
  }
  TPSIM_TRY_STATUS(check_samples(profile, file));
  return profile;
}

std::string to_json(const Profile& profile) {
  return to_text(json_from_spec(document_of(profile), kDocumentFields));
}

JsonValue profile_schema() { return schema_from_fields<ProfileDocument>(kDocumentFields); }

}  // namespace tpsim
