// What the driver calls. Functions whose name holds "removed" are the ones a test removes.
#pragma once
#include <string>
#include <vector>

struct Shape {
  virtual ~Shape();
  virtual std::string kept_name() const;
  virtual int removed_area() const;
};

std::string kept_catches(int how);           // exceptions of several types, clean-ups, rethrows
int kept_switch(int which);                  // a jump table
double kept_constants(int which);            // constants that only kept code reads
std::string kept_thread_locals();            // with a dynamic initialiser, on two threads
std::string kept_constructed();              // what the constructors of the library left behind
std::vector<int> kept_through_table(int x);  // a table of function pointers, kept and removed ones
Shape* kept_shape();

int kept_calls_removed_local(int x);     // direct call
int kept_calls_removed_exported(int x);  // through the PLT
int kept_takes_address(int x);           // LEA, then an indirect call
int kept_calls_from_table(int x);        // the removed entry of the table
int kept_jumps_to_removed(int x);        // tail call
int kept_through_unknown(long distance, int x);  // an address that no reference shows
double kept_reads_removed_constant(int which);

int removed_exported(int x);
int removed_unlisted(int x);  // removed, but nobody asked for an error: only the guard knows it
extern bool destructor_ran;
