// One answer of two searches: with the optimizer on the GPUs, and in the hosts' memory.
#pragma once

#include <cstddef>

#include "plans/search/search_result.h"

namespace tpsim {

// Adds what a search counted, and its time, to those of another.
void add_counts(const SearchResult& from, SearchResult& to);
// Keeps in `second` the nearest miss of two searches that found nothing.
void keep_nearest_miss(SearchResult& second, SearchResult& first);
// Merges the `top` best plans of both searches. At equal scores the first search's come first.
SearchResult merged(SearchResult first, SearchResult second, std::size_t top);

}  // namespace tpsim
