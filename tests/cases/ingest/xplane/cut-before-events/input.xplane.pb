
w/device:GPU:0