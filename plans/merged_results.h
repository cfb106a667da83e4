// One answer of two searches: with the optimizer on the GPUs, and in the hosts' memory.
#pragma once

#include <cstddef>

#include "plans/search.h"

namespace tpsim {

// Adds what a search counted, and its time, to those of another.
void add_counts(const SearchResult& from, SearchResult& to);
// Of two searches that found nothing, gives `second` the plan that misses by least.
void keep_nearest_miss(SearchResult& second, SearchResult& first);
// The `top` best plans of both; of equals the first search's come first.
SearchResult merged(SearchResult first, SearchResult second, std::size_t top);

}  // namespace tpsim
