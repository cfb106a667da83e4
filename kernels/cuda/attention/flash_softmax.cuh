// Online softmax over tiles of scores for the kernels of flash attention forward, with a running
// maximum and sum per query. Lanes hold scores in the layout of mma.m16n8k16 results.
#pragma once

#include "kernels/cuda/attention/flash.cuh"

namespace tpsim {

// Running maximum and sum of one query. Each lane with scores of the query has a copy.
struct Running {
  float max = -INFINITY;  // of scores in base 2
  float sum = 0;          // over the keys of this lane
};

// Multiplies the scores by `scale2` and adds the ALiBi bias.
template <int kM, int kKeys>
__device__ inline void add_slopes(float (&scores)[kM][kKeys / 8][4], int first_key, float scale2,
                                  float slope2) {
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int key = first_key + n * 8 + result_col(static_cast<int>(threadIdx.x) % 32, i);
      const float bias = slope2 * static_cast<float>(key);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        scores[m][n][i] = scale2 * scores[m][n][i] + bias;
        scores[m][n][i + 2] = scale2 * scores[m][n][i + 2] + bias;
      }
    }
  }
}

// Masks the keys that a query does not see.
template <int kM, int kKeys>
__device__ inline void mask_later_keys(float (&scores)[kM][kKeys / 8][4], int last_seen,
                                       int first_key) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = first_key + n * 8 + result_col(lane, i);
        if (key > last_seen + m * 16 + result_row(lane, i)) scores[m][n][i] = -INFINITY;
      }
    }
  }
}

// Replaces the scores of one tile by 2^(score - max). `shrink` receives the factor that rescales
// earlier outputs to the new maximum. The warp's first query sees keys up to `last_seen`. `scale2`
// is positive. Only tiles on the diagonal are masked.
template <int kM, int kKeys>
__device__ inline void softmax_tile(float (&scores)[kM][kKeys / 8][4], float (&shrink)[kM][2],
                                    Running (&running)[kM][2], int last_seen, int first_key,
                                    float scale2, float slope2) {
  if (slope2 != 0) {
    add_slopes<kM, kKeys>(scores, first_key, scale2, slope2);
    scale2 = 1;
  }
  if (first_key + kKeys - 1 > last_seen) {
    mask_later_keys<kM, kKeys>(scores, last_seen, first_key);
  }
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Running& r = running[m][half];
      float max = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        max = fmaxf(max, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      }
      max = fmaxf(max, __shfl_xor_sync(0xffffffffU, max, 1));
      max = fmaxf(r.max, scale2 * fmaxf(max, __shfl_xor_sync(0xffffffffU, max, 2)));
      shrink[m][half] = exp2_fast(r.max - max);
      r.max = max;
      r.sum *= shrink[m][half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[m][n][i] = exp2_fast(scale2 * scores[m][n][i] - max);
          r.sum += scores[m][n][i];
        }
      }
    }
  }
}

// Multiplies the outputs by `shrink` if a maximum has changed.
template <int D, int kM>
__device__ inline void shrink_sums(float (&out)[kM][D / 8][4], const float (&shrink)[kM][2]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!__any_sync(0xffffffffU, shrink[m][half] != 1.0F)) continue;
#pragma unroll
      for (int d = 0; d < D / 8; ++d) {
        out[m][d][2 * half] *= shrink[m][half];
        out[m][d][2 * half + 1] *= shrink[m][half];
      }
    }
  }
}

// Writes o = outputs / sums, and log_sum, of kM x 16 queries from `first_row` on.
template <class T, int D, int kM>
__device__ inline void store_rows(const FlashForwardArgs<T>& a, const float (&out)[kM][D / 8][4],
                                  const Running (&running)[kM][2], int sample, int head,
                                  int first_row) {
  const FlashSizes& s = a.sizes;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = running[m][half].sum;
      sum += __shfl_xor_sync(0xffffffffU, sum, 1);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      inverse[half] = 1.0F / sum;
      const int query = first_row + m * 16 + result_row(lane, 2 * half);
      if (lane % 4 == 0 && query < s.seq) {
        a.log_sum[s.row(sample, head) + query] = (running[m][half].max + log2f(sum)) * kLn2;
      }
    }
    store_result<T, D>(out[m], inverse, a.o.at(sample, head), a.o.position, first_row + m * 16,
                       s.queries());
  }
}

}  // namespace tpsim
