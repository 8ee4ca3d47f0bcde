// What both sources bring: templates, a virtual table, a guarded static, tables of handlers.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

extern int sink;

template <class T>
T checked(const std::vector<T>& values, unsigned index) {
  if (index >= values.size()) {
    throw std::out_of_range("index " + std::to_string(index));
  }
  return values[index];
}

inline int counter() {
  static int count = 0;
  return ++count;
}

struct Shape {
  virtual ~Shape();
  virtual int area() const;
  virtual int perimeter() const { return checked(std::vector<int>{1}, 0); }
};
