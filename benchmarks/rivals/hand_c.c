/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks written by hand, as the lower limit of the time. The compiler may use every instruction
 * of the machine, but not less exact arithmetic. */
#include <math.h>
#include <stddef.h>
#include <string.h>

/* The inputs, then the outputs, and the number of elements of the first input. */
struct state {
  void* const* arrays;
  const size_t* size;
};

int hand_rosenbrock(void* state) {
  const struct state* own = state;
  const double* restrict x = own->arrays[0];
  double* restrict value = own->arrays[1];
  double* restrict gradient = own->arrays[2];
  const size_t n = *own->size;
  double sum = 0;
  gradient[0] = 0;
  for (size_t i = 0; i + 1 < n; ++i) {
    const double curve = x[i + 1] - x[i] * x[i];
    const double rest = 1 - x[i];
    sum += 100 * curve * curve + rest * rest;
    gradient[i] += -400 * x[i] * curve - 2 * rest;
    gradient[i + 1] = 200 * curve;
  }
  *value = sum;
  return 0;
}

int hand_hs71(void* state) {
  const struct state* own = state;
  const double* restrict x = own->arrays[0];
  const double scale = *(const double*)own->arrays[1];
  const double* restrict multipliers = own->arrays[2];
  double* restrict gradient = own->arrays[4];
  double* restrict constraints = own->arrays[5];
  double* restrict jacobian = own->arrays[6];
  double* restrict hessian = own->arrays[7];
  const double a = x[0], b = x[1], c = x[2], d = x[3];
  const double sum = a + b + c;
  const double m0 = multipliers[0], m1 = multipliers[1];

  *(double*)own->arrays[3] = a * d * sum + c;
  gradient[0] = d * (sum + a);
  gradient[1] = a * d;
  gradient[2] = a * d + 1;
  gradient[3] = a * sum;
  constraints[0] = a * b * c * d;
  constraints[1] = a * a + b * b + c * c + d * d;
  jacobian[0] = b * c * d;
  jacobian[1] = a * c * d;
  jacobian[2] = a * b * d;
  jacobian[3] = a * b * c;
  for (int i = 0; i < 4; ++i) {
    jacobian[4 + i] = 2 * x[i];
  }
  hessian[0] = scale * 2 * d + 2 * m1;
  hessian[1] = hessian[4] = scale * d + m0 * c * d;
  hessian[2] = hessian[8] = scale * d + m0 * b * d;
  hessian[3] = hessian[12] = scale * (sum + a) + m0 * b * c;
  hessian[5] = 2 * m1;
  hessian[6] = hessian[9] = m0 * a * d;
  hessian[7] = hessian[13] = scale * a + m0 * a * c;
  hessian[10] = 2 * m1;
  hessian[11] = hessian[14] = scale * a + m0 * a * b;
  hessian[15] = 2 * m1;
  return 0;
}

int hand_robertson(void* state) {
  const struct state* own = state;
  const double* restrict y = own->arrays[0];
  double* restrict rate = own->arrays[1];
  double* restrict jacobian = own->arrays[2];
  const double slow = 0.04 * y[0], middle = 1e4 * y[1] * y[2], fast = 3e7 * y[1] * y[1];
  rate[0] = middle - slow;
  rate[1] = slow - middle - fast;
  rate[2] = fast;
  jacobian[0] = -0.04;
  jacobian[1] = 1e4 * y[2];
  jacobian[2] = 1e4 * y[1];
  jacobian[3] = 0.04;
  jacobian[4] = -1e4 * y[2] - 6e7 * y[1];
  jacobian[5] = -1e4 * y[1];
  jacobian[6] = 0;
  jacobian[7] = 6e7 * y[1];
  jacobian[8] = 0;
  return 0;
}

enum { kBatch = 16, kWidth = 32 };

/* out = x w + b, with rows of kWidth. */
static void affine(const float* restrict x, const float* restrict w, const float* restrict b,
                   float* restrict out) {
  for (int row = 0; row < kBatch; ++row) {
    float sums[kWidth];
    memcpy(sums, b, sizeof sums);
    for (int k = 0; k < kWidth; ++k) {
      for (int column = 0; column < kWidth; ++column) {
        sums[column] += x[row * kWidth + k] * w[k * kWidth + column];
      }
    }
    memcpy(out + row * kWidth, sums, sizeof sums);
  }
}

static void apply_tanh(float* values) {
  for (int i = 0; i < kBatch * kWidth; ++i) {
    values[i] = tanhf(values[i]);
  }
}

/* Gradients of the weights and biases of a layer from that of its output. */
static void layer_gradient(const float* restrict x, const float* restrict delta,
                           float* restrict w_gradient, float* restrict b_gradient) {
  memset(w_gradient, 0, kWidth * kWidth * sizeof *w_gradient);
  memset(b_gradient, 0, kWidth * sizeof *b_gradient);
  for (int row = 0; row < kBatch; ++row) {
    for (int k = 0; k < kWidth; ++k) {
      for (int column = 0; column < kWidth; ++column) {
        w_gradient[k * kWidth + column] += x[row * kWidth + k] * delta[row * kWidth + column];
      }
    }
    for (int column = 0; column < kWidth; ++column) {
      b_gradient[column] += delta[row * kWidth + column];
    }
  }
}

/* The gradient of a hidden layer's input to tanh, where `hidden` is tanh's result. */
static void propagate(const float* restrict delta, const float* restrict w,
                      const float* restrict hidden, float* restrict out) {
  float transposed[kWidth * kWidth];
  for (int k = 0; k < kWidth; ++k) {
    for (int column = 0; column < kWidth; ++column) {
      transposed[column * kWidth + k] = w[k * kWidth + column];
    }
  }
  static const float kZero[kWidth];
  affine(delta, transposed, kZero, out);
  for (int i = 0; i < kBatch * kWidth; ++i) {
    out[i] *= 1 - hidden[i] * hidden[i];
  }
}

int hand_perceptron(void* state) {
  void* const* arrays = ((const struct state*)state)->arrays;
  const float *w1 = arrays[0], *b1 = arrays[1], *w2 = arrays[2], *b2 = arrays[3];
  const float *w3 = arrays[4], *b3 = arrays[5], *x = arrays[6], *target = arrays[7];
  enum { kSize = kBatch * kWidth };
  float hidden1[kSize], hidden2[kSize], delta3[kSize], delta2[kSize], delta1[kSize];
  affine(x, w1, b1, hidden1);
  apply_tanh(hidden1);
  affine(hidden1, w2, b2, hidden2);
  apply_tanh(hidden2);
  affine(hidden2, w3, b3, delta3);
  float loss = 0;
  for (int i = 0; i < kSize; ++i) {
    const float error = delta3[i] - target[i];
    loss += error * error;
    delta3[i] = error * (2.0f / kSize);
  }
  *(float*)arrays[8] = loss / kSize;
  layer_gradient(hidden2, delta3, arrays[13], arrays[14]);
  propagate(delta3, w3, hidden2, delta2);
  layer_gradient(hidden1, delta2, arrays[11], arrays[12]);
  propagate(delta2, w2, hidden1, delta1);
  layer_gradient(x, delta1, arrays[9], arrays[10]);
  return 0;
}

int hand_tanh_64(void* state) {
  void* const* arrays = ((const struct state*)state)->arrays;
  const float* restrict a = arrays[0];
  const float* restrict x = arrays[1];
  float* restrict out = arrays[2];
  for (int row = 0; row < 64; ++row) {
    /* Eight partial sums, to vectorize: the compiler may not reorder a sum. */
    float sums[8] = {0};
    for (int k = 0; k < 64; k += 8) {
      for (int lane = 0; lane < 8; ++lane) {
        sums[lane] += a[row * 64 + k + lane] * x[k + lane];
      }
    }
    out[row] = tanhf(((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                     ((sums[4] + sums[5]) + (sums[6] + sums[7])));
  }
  return 0;
}

int hand_twice_sine(void* state) {
  const struct state* own = state;
  const float* restrict x = own->arrays[0];
  float* restrict out = own->arrays[1];
  for (size_t i = 0; i < *own->size; ++i) {
    out[i] = sinf(x[i]) * 2;
  }
  return 0;
}

int hand_scale_and_shift(void* state) {
  const struct state* own = state;
  const float* restrict x = own->arrays[0];
  float* restrict out = own->arrays[1];
  const size_t size = *own->size;
  for (size_t i = 0; i < size; ++i) {
    out[i] = x[i] * 2 + 1;
  }
  return 0;
}
