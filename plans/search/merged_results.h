// Merges the results of two searches: with the optimizer on the GPUs, and with the optimizer
// offloaded.
#pragma once

#include <cstddef>

#include "plans/search/search_result.h"

namespace tpsim {

// Adds the counts and the time of one search to those of another.
void add_counts(const SearchResult& from, SearchResult& to);
// Keeps the better nearest miss of two searches without plans in `second`.
void keep_nearest_miss(SearchResult& second, SearchResult& first);
// Merges the `top` best plans of both searches. At equal scores the plans of the first search
// precede.
SearchResult merged(SearchResult first, SearchResult second, std::size_t top);

}  // namespace tpsim
