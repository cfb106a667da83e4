// tpsim list: prints the names and main properties of catalogue entries.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "campaigns/assumptions.h"
#include "campaigns/offers.h"
#include "cli/commands/commands.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/json/json_value.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/model_index.h"

namespace tpsim::cli {
namespace {

// Columns of `tpsim list assumptions`: the assumptions that determine the cost of a run.
constexpr std::array kListedAssumptions = {Assumption::kGpuPower, Assumption::kOtherPower,
                                           Assumption::kPue,      Assumption::kCarbon,
                                           Assumption::kPrice,    Assumption::kNodeMtbf};

// A list as a table for the terminal and as JSON.
struct Listing {
  Table table;
  std::string group = {};  // model family of the previous row
  JsonValue entries = JsonValue(JsonValue::Array{});
};

std::string attention_text(const AttentionShape& attention) {
  if (attention.kv_heads == attention.heads) return std::to_string(attention.heads);
  return fmt::format("{}/{}", attention.heads, attention.kv_heads);
}

// Returns the kind of MLP, "swiglu", and for experts the number per token and in total: "swiglu, 2
// of 8".
std::string mlp_text(const ModelSpec& model) {
  std::string kind(name_of(model.mlp));
  if (!has_experts(model)) return kind;
  return fmt::format("{}, {} of {}", kind, model.experts.per_token, model.experts.count);
}

Status add_model(const Catalogue& catalogue, const std::string& name, Listing& listing) {
  TPSIM_TRY(const ModelSpec model, catalogue.load_model(name));
  const auto& [family, own_name, all, active, context] = entry_of(model, name);
  const bool goes_on = std::exchange(listing.group, family) == family;
  listing.table.add_row({goes_on ? "" : family, own_name, parameters_text(all),
                         active == all ? "" : parameters_text(active), std::to_string(model.layers),
                         std::to_string(model.hidden), attention_text(model.attention),
                         count_text(context), count_text(model.vocab), mlp_text(model)});
  listing.entries.push(json_object({{"name", name},
                                    {"family", family},
                                    {"parameters", all},
                                    {"active_parameters", active},
                                    {"experts", model.experts.count},
                                    {"layers", model.layers},
                                    {"hidden", model.hidden},
                                    {"heads", model.attention.heads},
                                    {"kv_heads", model.attention.kv_heads},
                                    {"seq", model.seq},
                                    {"context", context},
                                    {"vocab", model.vocab},
                                    {"position", name_of(model.attention.position)},
                                    {"norm", name_of(model.norm)},
                                    {"mlp", name_of(model.mlp)},
                                    {"source", model.source}}));
  return Ok{};
}

Status add_cluster(const Catalogue& catalogue, const std::string& name, Listing& listing) {
  TPSIM_TRY(const ClusterSpec cluster, catalogue.load_cluster(name));
  const std::int64_t gpus = gpus_of(cluster);
  listing.table.add_row({name, count_text(gpus), std::to_string(cluster.nodes),
                         std::to_string(cluster.gpus_per_node), printable(cluster.profile),
                         printable(cluster.stack), printable(cluster.inter_node.kind)});
  listing.entries.push(json_object({{"name", name},
                                    {"gpus", gpus},
                                    {"nodes", cluster.nodes},
                                    {"gpus_per_node", cluster.gpus_per_node},
                                    {"nics_per_node", cluster.nics_per_node},
                                    {"profile", cluster.profile},
                                    {"stack", cluster.stack},
                                    {"intra_node", cluster.intra_node.kind},
                                    {"inter_node", cluster.inter_node.kind},
                                    {"source", cluster.source}}));
  return Ok{};
}

Status add_profile(const Catalogue& catalogue, const std::string& name, Listing& listing) {
  TPSIM_TRY(const Profile profile, catalogue.load_profile(name));
  const DeviceFacts& device = profile.device;
  const auto ops = static_cast<std::int64_t>(profile.ops.size());
  const auto collectives = static_cast<std::int64_t>(profile.collectives.size());
  listing.table.add_row({name, std::string(name_of(profile.provenance)), to_string(device.memory),
                         to_string(device.matmul_peak), to_string(device.memory_bandwidth),
                         count_text(ops), count_text(collectives), printable(profile.date)});
  listing.entries.push(
      json_object({{"name", name},
                   {"provenance", name_of(profile.provenance)},
                   {"device", device.name},
                   {"memory_gib", device.memory.value() / kGiB},
                   {"matmul_peak_tflops", device.matmul_peak.value() / 1e12},
                   {"memory_bandwidth_gb_per_s", device.memory_bandwidth.value() / kGB},
                   {"op_samples", ops},
                   {"collective_samples", collectives},
                   {"date", profile.date},
                   {"source", profile.source}}));
  return Ok{};
}

// Returns the launcher that runs plans of the stack, "tpsim run" for tpsim's own stacks, or
// "predicted only".
std::string launched_by(const StackSpec& stack) {
  if (stack.launcher != Launcher::kNone) return std::string(name_of(stack.launcher));
  return stack.name.starts_with("reference") ? "tpsim run" : "predicted only";
}

Status add_stack(const Catalogue& catalogue, const std::string& name, Listing& listing) {
  TPSIM_TRY(const StackSpec stack, catalogue.load_stack(name));
  const Seconds per_block = stack.host.per_block_forward + stack.host.per_block_backward;
  listing.table.add_row({name, time_text(per_block), to_string(stack.memory.context),
                         stack.zero_2_and_3_with_pipeline ? "yes" : "no",
                         stack.training.overlap_gradient_reduction ? "yes" : "no",
                         launched_by(stack)});
  listing.entries.push(
      json_object({{"name", name},
                   {"host_s_per_block", per_block.value()},
                   {"context_gib", stack.memory.context.value() / kGiB},
                   {"zero_2_and_3_with_pipeline", stack.zero_2_and_3_with_pipeline},
                   {"overlap_gradient_reduction", stack.training.overlap_gradient_reduction},
                   {"launched_by", launched_by(stack)},
                   {"source", stack.source}}));
  return Ok{};
}

Status add_assumptions(const Catalogue& catalogue, const std::string& name, Listing& listing) {
  TPSIM_TRY(const Assumptions assumed, load_assumptions(catalogue, name));
  std::vector<Cell> cells = {name};
  JsonValue entry = json_object({{"name", name}});
  for (const Assumption one : kListedAssumptions) {
    const AssumptionRow& row = row_of(one);
    cells.emplace_back(assumption_text(row, assumed[one]));
    entry.set(row.key, assumption_text(row, assumed[one]));
  }
  listing.table.add_row(std::move(cells));
  listing.entries.push(std::move(entry));
  return Ok{};
}

std::string row_name(const RentalOffer& offer) {
  return fmt::format("{} {} {}", offer.gpu, offer.kind, offer.provider);
}

Status add_offer(const Catalogue& /*catalogue*/, const std::string& name, Listing& listing) {
  for (const RentalOffer& offer : rental_offers()) {
    if (row_name(offer) != name) continue;
    listing.table.add_row({offer.gpu, offer.kind, offer.provider, fmt::format("{:.3f}", offer.usd),
                           offer.date, offer.source});
    listing.entries.push(json_object({{"gpu", offer.gpu},
                                      {"kind", offer.kind},
                                      {"provider", offer.provider},
                                      {"usd_per_gpu_hour", offer.usd},
                                      {"date", offer.date},
                                      {"source", offer.source}}));
  }
  return Ok{};
}

struct ListKind {
  std::string_view name;
  std::string_view columns;
  Status (*add)(const Catalogue&, const std::string&, Listing&);
  std::optional<CatalogueKind> kind = {};  // absent for assumptions and offers
};

constexpr ListKind kListKinds[] = {
    {"models", "<family|<model|parameters|active|layers|hidden|heads/kv|context|vocab|<mlp",
     add_model, CatalogueKind::kModels},
    {"clusters", "<cluster|GPUs|nodes|per node|<profile|<stack|<between nodes", add_cluster,
     CatalogueKind::kClusters},
    {"profiles", "<profile|<provenance|memory|matmul peak|memory rate|ops|collectives|<date",
     add_profile, CatalogueKind::kProfiles},
    {"stacks",
     "<stack|host time per block|context|ZeRO 2, 3 with pipeline|overlapped reduction|<launched by",
     add_stack, CatalogueKind::kStacks},
    {"assumptions", "<assumptions|GPU|rest of a node|PUE|grid|price|node MTBF", add_assumptions},
    {"offers", "<GPU|<offer|<provider|USD an hour|<date|<source", add_offer}};

Result<ListKind> chosen_kind(const std::string& text) {
  std::vector<std::string_view> names;
  for (const ListKind& kind : kListKinds) names.push_back(kind.name);
  if (text.empty()) {
    return bad_input("the kind of entry is missing", "list",
                     "choose from models, clusters, profiles, stacks, assumptions and offers");
  }
  TPSIM_TRY(const std::size_t index, choose("kind", text, names));
  return kListKinds[index];
}

// Returns the names of entries: models sorted by family and number of parameters, other entries by
// name.
Result<std::vector<std::string>> names_in_order(const Catalogue& catalogue, const ListKind& of) {
  std::vector<std::string> names;
  if (of.add == add_offer) {
    for (const RentalOffer& offer : rental_offers()) names.push_back(row_name(offer));
    return names;
  }
  if (!of.kind) return assumption_names(catalogue);
  if (of.kind != CatalogueKind::kModels) return catalogue.list(*of.kind);
  TPSIM_TRY(const std::vector<ModelEntry> models, model_index(catalogue));
  for (const ModelEntry& model : models) names.push_back(model.name);
  return names;
}

}  // namespace

Result<Answer> run_list(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const ListKind chosen, chosen_kind(arguments.positional));
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  Listing listing{Table(columns_of(chosen.columns))};
  TPSIM_TRY(const std::vector<std::string> names, names_in_order(catalogue, chosen));
  const auto is_asked = [&](const std::string& name) {
    return arguments.more.empty() ||
           std::any_of(arguments.more.begin(), arguments.more.end(), [&](const std::string& word) {
             return name.find(word) != std::string::npos;
           });
  };
  bool holds_any = false;
  for (const std::string& name : names) {
    if (!is_asked(name)) continue;
    holds_any = true;
    TPSIM_TRY_STATUS(chosen.add(catalogue, name, listing));
  }
  if (!holds_any) {
    return bad_input(fmt::format("no name of {} contains '{}'", chosen.name,
                                 fmt::join(arguments.more, "' or '")),
                     "list", fmt::format("tpsim list {} shows all names", chosen.name));
  }
  if (!arguments.has("--json")) {
    return Answer{.text = listing.table.text(terminal), .is_prose = false};
  }
  return Answer{.document = json_object({{"version", "tpsim-list/1"},
                                         {"kind", chosen.name},
                                         {"entries", std::move(listing.entries)}})};
}

}  // namespace tpsim::cli
