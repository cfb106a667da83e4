// Hosts as schedulers print them, and the nodes that they form.
#include "core/machine/allocation.h"

#include <catch2/catch.hpp>

namespace tpsim {
namespace {

Allocation allocation_of(const char* text) {
  const auto read = parse_allocation(text, "nodes.txt");
  if (!read.ok()) FAIL(to_string(read.error()));
  return *read;
}

std::string names_in(const char* text) {
  std::string names;
  for (const AllocatedHost& host : allocation_of(text).hosts) names += host.name + " ";
  return names;
}

std::string allocation_error(const char* text) {
  const auto read = parse_allocation(text, "nodes.txt");
  REQUIRE_FALSE(read.ok());
  return to_string(read.error());
}

ClusterSpec rack_cluster() {
  ClusterSpec cluster;
  cluster.name = "racks";
  cluster.nodes = 512;
  cluster.gpus_per_node = 72;
  cluster.gpus_per_host = 4;
  cluster.partly_used_gpus = 64;
  cluster.nics_per_node = 72;
  return cluster;
}

TEST_CASE("host lists of Slurm name every host") {
  CHECK(names_in("node[001-003,7],gpu-a-3\n") == "node001 node002 node003 node7 gpu-a-3 ");
  CHECK(names_in("SLURM_JOB_NODELIST=a[9-11]") == "a9 a10 a11 ");
  CHECK(names_in("r[1-2]n[08-09]") == "r1n08 r1n09 r2n08 r2n09 ");
  CHECK(names_in("# given\n a # first\n\nb\n") == "a b ");
}

TEST_CASE("blocks of a topology are racks, and leaf switches keep hosts together") {
  const char* const blocks =
      "BlockName=b1 BlockIndex=0 Nodes=n[1-3] BlockSize=3\n"
      "BlockName=b2 BlockIndex=1 Nodes=n[4-6] BlockSize=3\nBlockSizes=3\n";
  CHECK(names_in(blocks) == "n1 n2 n3 n4 n5 n6 ");
  const Allocation given = allocation_of((std::string(blocks) + "n[2,5-6]\n").c_str());
  CHECK(lines_of(given) == std::vector<std::string>{"n2 rack=b1", "n5 rack=b2", "n6 rack=b2"});
  CHECK(names_in("SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]\n"
                 "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1,3]\n"
                 "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2,4]\nn[1-4]\n") == "n1 n3 n2 n4 ");
  CHECK(
      lines_of(allocation_of("- topology: t\n  cluster_default: true\n  block:\n"
                             "    block_sizes: [2,4]\n    blocks:\n      - block: b1\n"
                             "        nodes: n[1-2]\n      - block: 'b2'\n        nodes: n3\n")) ==
      std::vector<std::string>{"n1 rack=b1", "n2 rack=b1", "n3 rack=b2"});
}

TEST_CASE("lines of an allocation read back") {
  const Allocation given =
      allocation_of("a rack=r1 gpus=4 nics=0 ranks=0-1,4\nb rack=r2 nics=2 ranks=2-3\nc rack=r2\n");
  std::string text;
  for (const std::string& line : lines_of(given)) text += line + "\n";
  CHECK(lines_of(allocation_of(text.c_str())) == lines_of(given));
  CHECK(given.states_ranks());
}

TEST_CASE("errors of an allocation name file, line, value and what to write") {
  CHECK_THAT(allocation_error("a\nb[1-\n"), Catch::StartsWith("nodes.txt:2: 'b[1-' is not a list"));
  CHECK_THAT(allocation_error("a\na\n"),
             Catch::StartsWith("nodes.txt:2: host 'a' is listed twice"));
  CHECK_THAT(
      allocation_error("a gpu=8\n"),
      Catch::StartsWith("nodes.txt:1: unknown property of a host 'gpu' (did you mean gpus?"));
  CHECK_THAT(allocation_error("{\"format\"\n"), Catch::Contains("is not a list of at most"));
  CHECK_THAT(allocation_error("a gpus=0\n"), Catch::Contains("'0' is not a number of gpus"));
  CHECK_THAT(allocation_error("a rack\n"), Catch::Contains("rack has no value"));
  CHECK_THAT(allocation_error("a ranks=0,2\n"), Catch::Contains("not each of 0 to 1 once"));
  CHECK_THAT(allocation_error("a ranks=0\nb ranks=0\n"),
             Catch::Contains("not each of 0 to 1 once"));
  CHECK_THAT(allocation_error("a[1-2] ranks=0\n"), Catch::Contains("belongs to 2 hosts"));
  CHECK_THAT(allocation_error("\n"), Catch::StartsWith("nodes.txt: lists no host"));
  CHECK_THAT(allocation_error("Nodes=a\n"), Catch::Contains("no block or switch"));
  CHECK_THAT(allocation_error("a[0-999999]\n"), Catch::Contains("at most 131072 hosts"));
}

TEST_CASE("racks are the nodes of a cluster with NVLink racks") {
  const ClusterSpec cluster = rack_cluster();
  const Allocation given =
      allocation_of("a[01-17] rack=r1\nb[01-17] rack=r2\nc[1-2] rack=r3 nics=2\n");
  const auto nodes = nodes_of(given, cluster);
  REQUIRE(nodes.ok());
  CHECK(nodes->shapes == std::vector<NodeShape>{{68, 68}, {68, 68}, {8, 4}});
  const ClusterSpec made = with_nodes(cluster, given, *nodes);
  CHECK(gpus_of(made) == 144);
  CHECK(gpus_for(made, 100) == 144);
  CHECK(made.gpus_per_node == 72);
  const auto rackless = nodes_of(allocation_of("a[1-2]"), cluster);
  REQUIRE_FALSE(rackless.ok());
  CHECK_THAT(rackless.error().message, Catch::Contains("'a1' has no rack"));
  const auto large = nodes_of(allocation_of("a[1-19] rack=r1"), cluster);
  REQUIRE_FALSE(large.ok());
  CHECK_THAT(large.error().message, Catch::Contains("'r1' has 76 GPUs"));
}

TEST_CASE("equal nodes become the cluster's nodes") {
  ClusterSpec cluster = rack_cluster();
  const auto with = [&](const char* text) {
    const Allocation given = allocation_of(text);
    const auto nodes = nodes_of(given, cluster);
    REQUIRE(nodes.ok());
    return with_nodes(cluster, given, *nodes);
  };
  const ClusterSpec whole = with("a[1-18] rack=r1\nb[1-18] rack=r2");
  CHECK(whole.unequal_nodes.empty());
  CHECK(whole.nodes == 2);
  CHECK(whole.gpus_per_node == 72);
  CHECK(whole.partly_used_gpus == 64);
  const ClusterSpec part = with("a[1-12] rack=r1\nb[1-12] rack=r2\nc[1-12] rack=r3");
  CHECK(part.unequal_nodes.empty());
  CHECK(part.gpus_per_node == 48);
  CHECK(part.nics_per_node == 48);
  CHECK(gpus_for(part, 144) == 144);
}

TEST_CASE("ranks of a node fill its hosts in order") {
  const ClusterSpec cluster = rack_cluster();
  const Allocation given = allocation_of("a[1-2] rack=r1\nb1 rack=r2\n");
  const auto nodes = nodes_of(given, cluster);
  REQUIRE(nodes.ok());
  const std::vector<std::int32_t> node_of = {0, 1, 0, 0, 1, 0, 0, 0};
  const Allocation ranked = with_ranks(given, *nodes, node_of);
  CHECK(lines_of(ranked) == std::vector<std::string>{"a1 rack=r1 ranks=0,2-3,5",
                                                     "a2 rack=r1 ranks=6-7",
                                                     "b1 rack=r2 ranks=1,4"});
  CHECK(stated_nodes(ranked, *nodes) == node_of);
}

}  // namespace
}  // namespace tpsim
