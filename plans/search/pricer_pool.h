#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/scenario/scenario.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// Pricers of one scenario, one per search thread, for several searches in turn. A search reuses the
// layers that earlier searches traced and priced.
class PricerPool {
 public:
  explicit PricerPool(const Scenario& scenario)
      : prices_(std::make_shared<const PriceLists>(scenario)) {}

  const Scenario& scenario() const { return prices_->scenario; }

  std::shared_ptr<LayerPricer> take() {
    const std::lock_guard lock(mutex_);
    if (taken_ == all_.size()) all_.push_back(std::make_shared<LayerPricer>(prices_, false));
    return all_[taken_++];
  }
  // Makes all pricers available again. Call between searches, when no pricer is in use.
  void take_back_all() { taken_ = 0; }

 private:
  std::shared_ptr<const PriceLists> prices_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<LayerPricer>> all_;
  std::size_t taken_ = 0;
};

}  // namespace tpsim
