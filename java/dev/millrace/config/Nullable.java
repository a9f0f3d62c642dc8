package dev.millrace.config;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** A key whose value may be null. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.RECORD_COMPONENT)
@interface Nullable {
  /** Whether a resolved configuration shows the key when it is null. */
  boolean shown() default true;
}
