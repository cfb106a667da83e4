// Assumptions of campaigns: the shipped sets, and their texts.
#include "campaigns/assumptions.h"

#include <catch2/catch.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "campaigns/offers.h"
#include "core/scenario/catalogue.h"

namespace tpsim {

TEST_CASE("every shipped set of assumptions reads, with a source for each number") {
  const Result<Catalogue> catalogue = Catalogue::open();
  REQUIRE(catalogue.ok());
  for (const char* name : {"jean-zay-a100", "dgx-a100", "dgx-h100", "dgx-h200"}) {
    const Result<Assumptions> assumptions = load_assumptions(*catalogue, name);
    REQUIRE(assumptions.ok());
    CHECK(assumptions->name == name);
    for (const AssumptionRow& row : assumption_rows()) {
      if (row.assumption == Assumption::kSpareNodes) continue;  // chosen if not stated
      CHECK_FALSE(assumptions->values[static_cast<std::size_t>(row.assumption)].source.empty());
    }
  }
  CHECK_FALSE(load_assumptions(*catalogue, "jean-zay-a10").ok());
}

TEST_CASE("every cluster of the catalogue, and a cluster file with its GPU, has assumptions") {
  const Catalogue catalogue = Catalogue::open().value();
  for (const std::string& name : catalogue.list(CatalogueKind::kClusters)) {
    INFO(name);
    const ClusterSpec cluster = catalogue.load_cluster(name).value();
    const Profile profile = catalogue.load_profile(cluster.profile).value();
    for (const std::string& called : {name, std::string("folder/mine.json")}) {
      const std::string found = assumptions_name_of(catalogue, called, profile.name);
      // A profile that belongs to one published system has no usual cluster.
      if (called != name && cluster.usual_for.empty() && found.empty()) continue;
      const Result<Assumptions> assumptions = load_assumptions(catalogue, found);
      REQUIRE(assumptions.ok());
      CHECK((*assumptions)[Assumption::kPrice] > 0);
      CHECK((*assumptions)[Assumption::kGpuPower] > 0);
    }
  }
  CHECK(assumptions_name_of(catalogue, "mine.json", "unknown-gpu").empty());
  CHECK(assumptions_name_of(catalogue, "dgx-h100-node", "h100-sxm") == "dgx-h100");
}

TEST_CASE("an assumption needs its own unit and a sensible size") {
  const AssumptionRow& power = row_of(Assumption::kGpuPower);
  CHECK(parse_assumption(power, "400 W").value() == 400);
  CHECK(parse_assumption(power, "400W").value() == 400);
  for (const char* text : {"400", "400 kW", "W", "-400 W", "nan W", "1e99 W", ""}) {
    CHECK_FALSE(parse_assumption(power, text).ok());
  }
  // Also values beyond any integer.
  for (const char* text : {"1.5", "99e18", "-99e18", "1e300"}) {
    CHECK_FALSE(parse_assumption(row_of(Assumption::kSpareNodes), text).ok());
  }
  CHECK_FALSE(parse_assumption(row_of(Assumption::kPue), "1.2 W").ok());
}

TEST_CASE("rental offers are those of profiles, dated, and each stands once") {
  const Catalogue catalogue = Catalogue::open().value();
  const std::vector<RentalOffer>& offers = rental_offers();
  REQUIRE(offers.size() > 100);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const RentalOffer& offer = offers[i];
    INFO(offer.gpu << " " << offer.kind << " " << offer.provider);
    CHECK(catalogue.load_profile(offer.gpu).ok());
    CHECK((offer.kind == "on-demand" || offer.kind == "reserved" || offer.kind == "spot"));
    CHECK((offer.usd > 0.05 && offer.usd < 20));
    CHECK((offer.date.size() == 10 && offer.date.starts_with("20")));
    CHECK_FALSE(offer.source.empty());
    if (i == 0) continue;
    const RentalOffer& before = offers[i - 1];
    CHECK(std::tie(before.gpu, before.kind, before.provider) <
          std::tie(offer.gpu, offer.kind, offer.provider));
  }
}

TEST_CASE("a price can be that of rental offers") {
  CHECK(offered_price("h200", "reserved")->usd == Approx((2.79 + 3.00) / 2));
  CHECK(offered_price("h200", "lambda").ok() == false);
  CHECK(offered_price("h100-sxm", "aws")->usd == Approx(6.88));
  CHECK(offered_price("h100-sxm", "coreweave:spot")->usd == Approx(2.464));
  CHECK(offered_price("h100-sxm", "spott").error().hint == "did you mean spot?");
  CHECK_FALSE(offered_price("vr200", "spot").ok());
  const Catalogue catalogue = Catalogue::open().value();
  Assumptions amazon = load_assumptions(catalogue, "p5").value();
  CHECK(amazon[Assumption::kPrice] == Approx(6.88));
  REQUIRE(set_offered_price(amazon, "reserved").ok());
  CHECK(amazon[Assumption::kPrice] == Approx(2.72));
}

}  // namespace tpsim
