// An open file or pipe, closed by the destructor.
#pragma once

#include <unistd.h>

namespace tpsim {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}  // negative: none
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

}  // namespace tpsim
