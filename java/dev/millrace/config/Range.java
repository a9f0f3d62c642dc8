package dev.millrace.config;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** What a number in the configuration may be, both ends included. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.RECORD_COMPONENT)
@interface Range {
  double min() default -Double.MAX_VALUE;

  double max() default Double.MAX_VALUE;
}
