export FP8=True
export FP8_PARAMS=True
export USE_DIST_OPTIMIZER=True
export NCCL_MIN_NCHANNELS=4
