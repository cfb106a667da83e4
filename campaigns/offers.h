// Rental offers of GPUs: data/offers/rental.csv, embedded in the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

struct RentalOffer {
  std::string gpu;       // name of a profile: "h100-sxm"
  std::string kind;      // "on-demand", "spot" or "reserved"
  std::string provider;  // "lambda"
  double usd = 0;        // per GPU-hour, list price
  std::string date;      // the price was read on: "2026-09-20"
  std::string source;
};

// Sorted by GPU, kind and provider.
const std::vector<RentalOffer>& rental_offers();

struct OfferedPrice {
  double usd = 0;      // median
  std::string source;  // number of offers, their range and dates
};

// Returns the price of a GPU from the offers that `words` select: a kind, a provider (on-demand),
// or both as "PROVIDER:KIND". Error with the nearest choice if the table has none.
Result<OfferedPrice> offered_price(std::string_view gpu, std::string_view words);

}  // namespace tpsim
