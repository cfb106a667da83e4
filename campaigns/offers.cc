#include "campaigns/offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {

extern const std::span<const unsigned char> kRentalOffers;  // data/offers/rental.csv

namespace {

constexpr std::string_view kOnDemand = "on-demand";

// A row is "gpu,offer,provider,usd_per_gpu_hour,date,source"; the source may be quoted.
RentalOffer offer_of(std::string_view row) {
  RentalOffer offer;
  offer.gpu = cut_off(row, ",");
  offer.kind = cut_off(row, ",");
  offer.provider = cut_off(row, ",");
  const auto price = leading_number(cut_off(row, ","));
  offer.usd = price ? price->value : 0;
  offer.date = cut_off(row, ",");
  if (row.starts_with('"')) row = row.substr(1, row.size() - 2);
  offer.source = row;
  return offer;
}

std::vector<RentalOffer> read_offers() {
  std::string_view text(reinterpret_cast<const char*>(kRentalOffers.data()), kRentalOffers.size());
  cut_off(text, "\n");  // names of the columns
  std::vector<RentalOffer> offers;
  while (!text.empty()) offers.push_back(offer_of(trimmed(cut_off(text, "\n"))));
  return offers;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Error no_offer(std::string_view gpu, std::string_view words) {
  std::set<std::string> known;
  for (const RentalOffer& offer : rental_offers()) {
    if (offer.gpu == gpu) known.insert({offer.kind, offer.provider + ":" + offer.kind});
  }
  if (known.empty()) {
    return bad_input(fmt::format("the catalogue has no rental offer of {}", gpu), "",
                     "state a price, such as 2USD/h");
  }
  const std::vector<std::string> names(known.begin(), known.end());
  return bad_input(
      fmt::format("no rental offer of {} is '{}'", gpu, words), "",
      meant(nearest(words, names), fmt::format("tpsim list offers {} shows them", gpu)));
}

}  // namespace

const std::vector<RentalOffer>& rental_offers() {
  static const std::vector<RentalOffer> offers = read_offers();
  return offers;
}

Result<OfferedPrice> offered_price(std::string_view gpu, std::string_view words) {
  std::vector<double> prices;
  std::string first, last;
  for (const RentalOffer& offer : rental_offers()) {
    const bool chosen = words == offer.kind || words == offer.provider + ":" + offer.kind ||
                        (words == offer.provider && offer.kind == kOnDemand);
    if (offer.gpu != gpu || !chosen) continue;
    prices.push_back(offer.usd);
    first = first.empty() ? offer.date : std::min(first, offer.date);
    last = std::max(last, offer.date);
  }
  if (prices.empty()) return no_offer(gpu, words);
  const auto [least, most] = std::minmax_element(prices.begin(), prices.end());
  OfferedPrice price{median(prices), ""};
  if (prices.size() == 1) {
    price.source = fmt::format("rental offer '{}' of {}, list price of {}", words, gpu, first);
  } else {
    price.source =
        fmt::format("median of {} rental offers '{}' of {}, {} to {} USD/h, read {} to {}",
                    prices.size(), words, gpu, *least, *most, first, last);
  }
  if (words.ends_with("spot")) price.source += "; interruptions count if --node-mtbf has them";
  return price;
}

}  // namespace tpsim
