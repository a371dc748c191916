// SPDX-License-Identifier: Apache-2.0
// Deliberate faults, one for each kind that a sanitizer or Valgrind must report. Without a tool
// most of them go unnoticed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

namespace {

// Hides a value from the optimizer and from warnings.
template <typename T>
T hidden(T value) {
  volatile T copy = value;
  return copy;
}

int heap_overflow() {
  char* bytes = static_cast<char*>(std::malloc(hidden(10U)));
  bytes[hidden(10)] = 1;
  const int value = bytes[hidden(10)];
  std::free(bytes);
  return value;
}

int use_after_free() {
  int* number = hidden(new int(1));
  delete hidden(number);
  return *number;
}

int leak() {
  char* bytes = hidden(static_cast<char*>(std::malloc(100)));
  bytes[0] = 1;
  const int value = bytes[0];
  bytes = nullptr;
  return value;
}

int signed_overflow() { return hidden(std::numeric_limits<int>::max()) + hidden(1); }

int data_race() {
  int number = 0;
  const auto count = [&number] {
    for (int i = 0; i < 1000; ++i) {
      ++number;
    }
  };
  std::thread other(count);
  count();
  other.join();
  return number;
}

int uninitialized_read() {
  int* number = hidden(static_cast<int*>(std::malloc(sizeof(int))));
  const int value = *number == 12345 ? 1 : 2;
  std::free(number);
  return value;
}

constexpr struct {
  const char* name;
  int (*function)();
} kFaults[] = {{"heap_overflow", heap_overflow},
               {"use_after_free", use_after_free},
               {"leak", leak},
               {"signed_overflow", signed_overflow},
               {"data_race", data_race},
               {"uninitialized_read", uninitialized_read}};

}  // namespace

int main(int argc, char** argv) {
  for (const auto& fault : kFaults) {
    if (argc == 2 && std::strcmp(argv[1], fault.name) == 0) {
      std::printf("%s gave %d\n", fault.name, fault.function());
      return 0;
    }
  }
  std::fprintf(stderr, "usage: planted <fault>\n");
  return 2;
}
