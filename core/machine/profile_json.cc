#include "core/machine/profile_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"

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

constexpr NumberRange kCount{1, 1e15};        // dims and bytes: exact in a double
constexpr NumberRange kDuration{1e-12, 1e6};  // seconds
constexpr NumberRange kShare{1e-6, 1.5};      // efficiencies; a fit may slightly exceed 1

std::vector<TableColumn> op_columns(std::int64_t dims) {
  std::vector<TableColumn> columns(static_cast<std::size_t>(dims), {"a dim", true, kCount});
  columns.push_back({"seconds", false, kDuration});
  columns.push_back({"spread", false, {0, 1e3}});
  columns.push_back({"count", true, {1, 1e9}});
  return columns;
}

constexpr auto kOpGroupFields = [](auto& io, auto& group) {
  constexpr auto kWithKernels = all_up_to<OpKind::kInitNormal>();
  io.choice({"op", "kind of the kernel (OpKind in core/program/program.h)"}, group.key.kind,
            {kWithKernels.begin(), kWithKernels.end()});
  io.integer({"variant",
              "variant of the kernel as a number; its bits depend on op (core/program/program.h)"},
             group.key.variant, {0, 255});
  io.choice({"dtype", "dtype of the operands"}, group.key.dtype,
            {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt32, DType::kFloat8,
             DType::kFloat8Block, DType::kMxFloat8, DType::kNvFloat4});
  io.integer({"dims", "number of dimensions at the start of each sample"}, group.dims,
             {1, static_cast<std::int64_t>(group.key.dims.size())});
  io.table({"samples",
            "one row per size: its dimensions, median time in s, and optionally the relative "
            "median absolute deviation and the number of timings"},
           group.rows, op_columns(group.dims), static_cast<std::size_t>(group.dims) + 1);
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
  io.choice({"collective", "collective, or P2P send and receive"}, group.kind,
            every<CollectiveKind>());
  io.integer({"ranks", "number of ranks of the communicator"}, group.ranks, {1, 1024});
  io.table({"samples",
            "one row per size: size of the whole array in bytes, as in nccl-tests, and median time "
            "in s"},
           group.rows, {{"bytes", true, kCount}, {"seconds", false, kDuration}}, 2);
};

constexpr auto kDeviceFields = [](auto& io, auto& device) {
  io.text({"name", "name of the GPU"}, device.name);
  io.text({"source", "source of the properties"}, device.source);
  io.quantity({"memory", "total GPU memory as the driver reports it"}, device.memory);
  io.integer({"processors", "streaming multiprocessors (GPU) or cores"}, device.processors, {});
  io.quantity({"matmul_peak", "dense peak of GEMMs in matmul_dtype"}, device.matmul_peak);
  io.choice({"matmul_dtype", "dtype of the operands for which matmul_peak holds"},
            device.matmul_dtype, {DType::kFloat32, DType::kBFloat16, DType::kFloat16});
  io.quantity({"fp8_peak", "dense peak of GEMMs in fp8; omitted: not supported"}, device.fp8_peak,
              kOptional);
  io.quantity({"mxfp8_peak",
               "dense peak of GEMMs in MXFP8 (a scale per 32 elements); omitted: not supported"},
              device.mxfp8_peak, kOptional);
  io.quantity({"nvfp4_peak", "dense peak of GEMMs in NVFP4; omitted: not supported"},
              device.nvfp4_peak, kOptional);
  io.quantity({"vector_peak", "peak of fp32 arithmetic without tensor cores"}, device.vector_peak);
  io.quantity({"memory_bandwidth", "peak memory bandwidth"}, device.memory_bandwidth);
  io.quantity({"measured_bandwidth",
               "memory bandwidth of the GPU that timed the GEMM samples [memory_bandwidth]"},
              device.measured_bandwidth, kOptional);
  io.flag({"asynchronous", "kernels run asynchronously to the host"}, device.asynchronous);
  io.require(device.memory.value() > 0, "memory", "it must be above zero");
  io.require(device.matmul_peak.value() > 0, "matmul_peak", "it must be above zero");
  io.require(device.vector_peak.value() > 0, "vector_peak", "it must be above zero");
  io.require(device.memory_bandwidth.value() > 0, "memory_bandwidth", "it must be above zero");
};

constexpr auto kMatmulFields = [](auto& io, auto& matmul) {
  constexpr NumberRange kFraction{0, 1};
  io.number({"wave_rounding",
             "wave quantization: share of the idle SM time of a partial wave that is lost; below 1 "
             "with split-K or stream-K [0.1]"},
            matmul.wave_rounding, kFraction, kOptional);
  io.number(
      {"small_tile_exponent",
       "a tile of area a reaches (a / area of the largest tile) ^ this number of the rate [0.05]"},
      matmul.small_tile_exponent, {0, 2}, kOptional);
  io.number({"epilogue_exposed",
             "share of the time of output writes that does not overlap with compute [0.55]"},
            matmul.epilogue_exposed, {0, 2}, kOptional);
  io.number({"traffic_efficiency",
             "share of the memory bandwidth that GEMMs achieve for operands and output [0.8]"},
            matmul.traffic_efficiency, kShare, kOptional);
  io.number(
      {"unaligned_rate",
       "relative rate of GEMMs with an operand whose rows are not a multiple of 16 bytes [0.68]"},
      matmul.unaligned_rate, kShare, kOptional);
  io.number({"unaligned_batched_rate", "unaligned_rate of batched GEMMs [0.68]"},
            matmul.unaligned_batched_rate, kShare, kOptional);
  io.number({"nn_layout_factor",
             "time of dgrad GEMMs (no transposed operand), relative to forward GEMMs of the same "
             "size [1]"},
            matmul.nn_layout_factor, {0.1, 10}, kOptional);
  io.number({"tn_layout_factor",
             "time of wgrad GEMMs (first operand transposed), relative to forward GEMMs of the "
             "same size [1]"},
            matmul.tn_layout_factor, {0.1, 10}, kOptional);
  io.number({"split_sum_cost",
             "additional time of 8-bit GEMMs whose partial sums are promoted to fp32, relative to "
             "the GEMM at full rate [0]"},
            matmul.split_sum_cost, {0, 10}, kOptional);
};

constexpr auto kAttentionSpeedFields = [](auto& io, auto& speeds) {
  io.number({"flash1", "relative speed of FlashAttention 1"}, speeds.flash1, {0.01, 10});
  io.number({"flash2", "relative speed of FlashAttention 2"}, speeds.flash2, {0.01, 10});
  io.number({"flash3", "relative speed of FlashAttention 3; 1 if the GPU has no such kernel"},
            speeds.flash3, {0.01, 10});
  io.number({"cudnn", "relative speed of cuDNN's fused attention"}, speeds.cudnn, {0.01, 10});
};

constexpr auto kModelFields = [](auto& io, auto& model) {
  io.text({"source", "source of the constants"}, model.source, kOptional);
  io.choice({"provenance", "origin of the constants, as provenance of the profile"},
            model.provenance,
            {Provenance::kMeasuredHere, Provenance::kPublished, Provenance::kDatasheet});
  io.number({"matmul_efficiency",
             "rate of large GEMMs, relative to the peak after tile and wave quantization [0.78]"},
            model.matmul_efficiency, kShare, kOptional);
  io.integer({"tile_m", "rows of the output tile that one SM computes [128]"}, model.tile_m, {},
             kOptional);
  io.integer({"tile_n", "columns of the output tile that one SM computes [256]"}, model.tile_n, {},
             kOptional);
  io.quantity({"matmul_latency",
               "time of one GEMM in addition to its tiles: launch, prologue and epilogue [2.5 us]"},
              model.matmul_latency, kOptional);
  io.object(
      {"matmul", "constants of the GEMM time model"},
      [&](auto& inner) { kMatmulFields(inner, model.matmul); }, kOptional);
  io.number({"sustained_clock",
             "rate of GEMMs at the clock sustained in training, relative to the rate at burst "
             "clock [0.9]"},
            model.sustained_clock, kShare, kOptional);
  io.number({"narrow_sustained_clock",
             "sustained_clock of 8-bit and 4-bit GEMMs; 0: same as sustained_clock [0]"},
            model.narrow_sustained_clock, {0, 1.5}, kOptional);
  io.number({"streaming_efficiency",
             "share of the memory bandwidth that elementwise kernels achieve [0.85]"},
            model.streaming_efficiency, kShare, kOptional);
  io.number({"reduction_efficiency",
             "share of the memory bandwidth that norm and softmax kernels achieve [0.75]"},
            model.reduction_efficiency, kShare, kOptional);
  io.number({"flash_forward_efficiency",
             "share of the GEMM peak that fused attention achieves in forward [0.65]"},
            model.flash_forward_efficiency, kShare, kOptional);
  io.number({"flash_backward_efficiency",
             "share of the GEMM peak that fused attention achieves in backward [0.53]"},
            model.flash_backward_efficiency, kShare, kOptional);
  io.object(
      {"attention_speeds",
       "speed of attention kernels, relative to the fused kernel of the samples [flash1 0.55, "
       "others 1]"},
      [&](auto& inner) { kAttentionSpeedFields(inner, model.attention_speeds); }, kOptional);
  io.quantity({"kernel_latency", "time of an empty kernel [2.5 us]"}, model.kernel_latency,
              kOptional);
};

constexpr auto kMachineFields = [](auto& io, auto& machine) {
  io.text({"description", "GPU and driver, or processor, cores and operating system"},
          machine.description);
  io.integer({"devices", "number of such GPUs in the machine; 0: unknown"}, machine.devices,
             {0, 1024});
  io.number({"rank_jitter",
             "relative standard deviation of a rank's step time while all GPUs work; on this "
             "machine, added in quadrature to rank_jitter of the stack"},
            machine.rank_jitter, {0, 1});
};

constexpr auto kRuntimeFields = [](auto& io, auto& runtime) {
  constexpr NumberRange kAny{0, 1e6};
  io.quantity({"launch",
               "host time per kernel launch; replaces host.per_op of the stacks reference and "
               "reference-cpu"},
              runtime.launch, kOptional);
  io.quantity(
      {"launch_gap", "GPU idle time between two kernels of a stream while the host runs ahead"},
      runtime.launch_gap, kOptional);
  io.quantity({"empty_kernel", "GPU time of a nearly empty kernel"}, runtime.empty_kernel,
              kOptional);
  io.quantity({"upload", "bandwidth of copies from pinned host memory to the GPU"}, runtime.upload,
              kOptional);
  io.quantity({"download", "bandwidth of copies from the GPU to pinned host memory"},
              runtime.download, kOptional);
  io.quantity({"context",
               "GPU memory in use in addition to tensors; replaces memory.context of the stacks "
               "reference and reference-cpu"},
              runtime.context, kOptional);
  io.number({"burst_mhz", "SM clock in MHz during short work"}, runtime.burst_mhz, kAny, kOptional);
  io.number({"sustained_mhz", "SM clock in MHz under sustained GEMMs"}, runtime.sustained_mhz, kAny,
            kOptional);
  io.number({"sustained_watts", "GPU power in W under sustained GEMMs"}, runtime.sustained_watts,
            kAny, kOptional);
  io.number({"sustained_celsius", "GPU temperature in degrees Celsius under sustained GEMMs"},
            runtime.sustained_celsius, kAny, kOptional);
};

constexpr auto kAlgorithmFields = [](auto& io, auto& choice) {
  io.text({"choice", "one algorithm in the library's encoding: GEMM shape and kernel settings"},
          choice);
};

constexpr auto kDocumentFields = [](auto& io, auto& document) {
  auto& profile = document.profile;
  io.format("tpsim-profile/1");
  io.text({"name", "name in reports"}, profile.name);
  io.text({"source", "source of the samples"}, profile.source);
  io.text({"date", "date of the measurement"}, profile.date);
  io.choice({"provenance",
             "measured: by tpsim profile on the GPU itself; published: from published "
             "measurements; datasheet: from peaks only"},
            profile.provenance,
            {Provenance::kMeasuredHere, Provenance::kPublished, Provenance::kDatasheet});
  io.object(
      {"machine", "machine on which tpsim profile ran"},
      [&](auto& inner) { kMachineFields(inner, profile.machine); }, kOptional);
  io.object({"device", "properties of the GPU"},
            [&](auto& inner) { kDeviceFields(inner, profile.device); });
  io.object({"model",
             "constants for kernels without sample; omitted constants are typical of the GPUs in "
             "data/profiles"},
            [&](auto& inner) { kModelFields(inner, profile.model); });
  io.flag({"burst_clocks",
           "ops were timed in short bursts at burst clock, so that predictions slow GEMMs by "
           "sustained_clock"},
          profile.burst_clocks);
  io.object(
      {"runtime", "overheads and clocks measured by tpsim profile; omitted: not measured"},
      [&](auto& inner) { kRuntimeFields(inner, profile.runtime); }, kOptional);
  io.text({"algorithms_chosen_by", "library, its version and GPU for which algorithms hold"},
          profile.algorithms.chosen_by, kOptional);
  io.objects(
      {"algorithms", "fastest GEMM algorithms found, which tpsim run uses again on such a GPU"},
      profile.algorithms.choices, kAlgorithmFields, kOptional);
  io.objects({"ops", "samples of kernel times, grouped by op, variant and dtype"}, document.ops,
             kOpGroupFields, kOptional);
  io.objects({"sustained",
              "samples of ops timed again at sustained clocks and temperature; they take "
              "precedence over ops"},
             document.sustained, kOpGroupFields, kOptional);
  for (const auto* groups : {&document.ops, &document.sustained}) {
    const DType type = type_without_peak(profile, *groups);
    io.require(type == DType::kFloat32, "device",
               fmt::format("the file has samples of {}, which need {}_peak", name_of(type),
                           type == DType::kFloat8Block ? "fp8" : name_of(type)));
  }
  io.object_if(
      profile.link.bandwidth > BytesPerSecond(),
      {"link",
       "link between the GPUs that timed collectives; omitted: that of the predicted cluster"},
      [&](auto& inner) { kLinkFields(inner, profile.link); });
  io.objects({"collectives",
              "samples of collective times on one node, grouped by collective and number of ranks"},
             document.collectives, kCollectiveGroupFields, kOptional);
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
