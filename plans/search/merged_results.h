// Merges the results of two searches: one with the optimizer on the GPUs, one with the optimizer
// offloaded to the host.
#pragma once

#include <cstddef>

#include "plans/search/search_result.h"

namespace tpsim {

// Adds the counts and the elapsed time of search `from` to those of `to`.
void add_counts(const SearchResult& from, SearchResult& to);
// Sets second.nearest_miss to the nearest miss with the lower peak. For two searches without plans.
void keep_nearest_miss(SearchResult& second, SearchResult& first);
// Returns the `top` best plans of both searches. At equal scores, plans of the first search come
// first.
SearchResult merged(SearchResult first, SearchResult second, std::size_t top);

}  // namespace tpsim
